import { type Policy, type PolicyDocument, policy } from '../../middleware/index.ts';
import { parseJson, readText } from './json-file.ts';
import { UsageError } from './usage-error.ts';

/** The policy of a file. @throws UsageError naming each place that is wrong. */
export async function readPolicy(path: string, option: string): Promise<Policy> {
  return parsePolicy(await readText(path, option), path);
}

/** The policy in the text of a file. @throws UsageError naming each place that is wrong. */
export function parsePolicy(text: string, path: string): Policy {
  const document = parseJson(text, `"${path}"`);
  try {
    return policy(document as PolicyDocument);
  } catch (error) {
    throw new UsageError(`"${path}": ${(error as Error).message}`);
  }
}
