export { ManualClock, turns } from '../../src/testing/manual-clock.ts';
