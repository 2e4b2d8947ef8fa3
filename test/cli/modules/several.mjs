import { createDispatcher } from 'toolonion';

export const one = createDispatcher();
export const two = createDispatcher();
