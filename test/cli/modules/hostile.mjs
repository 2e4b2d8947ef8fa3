export const trap = new Proxy(
  {},
  {
    get() {
      throw new Error('no looking');
    },
    getPrototypeOf() {
      throw new Error('no looking');
    },
    has() {
      throw new Error('no looking');
    },
    ownKeys() {
      throw new Error('no looking');
    },
  },
);
