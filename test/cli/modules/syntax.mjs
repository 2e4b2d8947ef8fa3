// A slip.
export const { = 1;
