import { asks, isAsking } from './judgement.ts';
import { type Middleware, named } from './middleware.ts';
import { isScheduling, schedules } from './schedule.ts';

/** Marks a layer that another is within as what that one is: by its name, and by whether it asks people or has calls wait for each other. */
export function standsFor(layer: Middleware, inner: Middleware): Middleware {
  if (isAsking(inner)) asks(layer);
  if (isScheduling(inner)) schedules(layer);
  return named(inner.name, layer);
}
