/** Whether two types are the same, down to optional and readonly properties: both must behave alike in an open conditional. */
export type Equal<A, B> =
  (<Probe>() => Probe extends A ? 1 : 2) extends <Probe>() => Probe extends B ? 1 : 2 ? true : false;

/** Compiles only for `true`. */
export type Expect<Truth extends true> = Truth;
