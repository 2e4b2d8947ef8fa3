export {
  type Cost,
  type LayerCost,
  type MeasuredCall,
  type Measurement,
  type MeasureOptions,
  type MeasureProgress,
  measure,
} from './measure.ts';
export type { Spread } from './rounds.ts';
export { emptyTrace, type Passage, type Span, spansOf, type Trace, tracedIn, withProbes } from './spans.ts';
