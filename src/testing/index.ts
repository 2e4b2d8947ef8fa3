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
export type { Span } from './spans.ts';
