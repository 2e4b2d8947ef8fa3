export { ManualClock } from './manual-clock.ts';
export { measure } from './measure.ts';
export type {
  Cost,
  LayerCost,
  MeasuredCall,
  Measurement,
  MeasureOptions,
  MeasureProgress,
} from './measurement.ts';
export type { Spread } from './rounds.ts';
export { emptyTrace, type Passage, type Span, spansOf, type Trace, tracedIn, withProbes } from './spans.ts';
export { testMiddleware } from './test-middleware.ts';
