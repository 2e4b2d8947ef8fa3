import { createDispatcher, named } from 'toolonion';
import { allowAll, permission, timeout, validation } from 'toolonion/middleware';

export default createDispatcher({
  middleware: [
    timeout(),
    (call, next) => next(call),
    named('a-layer-with-a-very-long-name', (call, next) => next(call)),
    validation(),
    permission({ check: allowAll }),
  ],
});
