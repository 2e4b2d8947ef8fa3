import { logging } from '../middleware/logging.ts';
import { outputLimit } from '../middleware/output-limit.ts';
import { permission } from '../middleware/permission.ts';
import { rules } from '../middleware/permission-rules.ts';
import { timeout } from '../middleware/timeout.ts';
import { validation } from '../middleware/validation.ts';
import { createDispatcher, defineTool } from '../src/index.ts';
import type { Contestant, Execute, Scenario } from './scenario.ts';

/** The engine with the five layers that do the five jobs. */
export function engine({ name, schema, execute, allowed, limit, limitMs, logger }: Scenario): Contestant {
  const tool = defineTool({
    name,
    description: 'Tells the weather.',
    inputSchema: schema,
    execute: (input, call) => execute(input as unknown as Parameters<Execute>[0], call),
  });
  const dispatcher = createDispatcher({
    tools: [tool],
    middleware: [
      logging({ logger }),
      validation(),
      permission({ check: rules({ allow: allowed }) }),
      outputLimit({ limit }),
      timeout({ limitMs }),
    ],
  });
  return (request) => dispatcher.dispatch(request);
}
