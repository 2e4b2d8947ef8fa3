import { type Middleware, Schedule, type ScheduleOptions } from '../src/index.ts';

export type { ScheduleOptions } from '../src/index.ts';

/**
 * Gives each call its turn. Those run together whose tools say that they may (`concurrencySafe`); one that may not waits for all before
 * it and holds up all behind it; of calls with equal resource keys one runs at a time, in order.
 *
 * Inside permission, so that a person who thinks holds no slot, and what tools say is asked of validated arguments; outside whatever
 * limits or repeats a run, for waiting is no work.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example schedule({ concurrency: 8 })
 */
export function schedule(options: ScheduleOptions = {}): Middleware {
  return new Schedule(options).layer('schedule');
}
