import { isPlainObject, type JsonValue, setOwn } from '../../json.ts';
import {
  IN_DESCRIPTION,
  isEqual,
  listed,
  mergedWith,
  ruleText,
  type Schema,
  type SchemaLoss,
  UNFIT,
  withRules,
} from './parts.ts';
import { References } from './references.ts';

/**
 * A schema of arguments without what says that it is another one, one of several, or not another: providers refuse that at the root. Its properties are
 * those of all, and required is what each requires.
 */
export function withOneRoot(root: Schema): { readonly schema: Schema; readonly losses: readonly SchemaLoss[] } {
  const references = new References(root);
  const losses: SchemaLoss[] = [];
  const { anyOf, oneOf, allOf, not, enum: values, ...own } = withoutReference(root, references);
  let schema: Schema = own;
  for (const [index, branch] of listed(allOf).entries()) {
    const merged = mergedWith(schema, references.resolved(branch));
    if (merged === undefined) losses.push({ place: `/allOf/${index}`, keyword: 'allOf', message: UNFIT });
    schema = merged ?? schema;
  }
  for (const branches of [anyOf, oneOf])
    schema = withAll(
      schema,
      listed(branches).map((branch) => references.resolved(branch)),
    );
  const rules: string[] = [];
  for (const [keyword, value] of Object.entries({ anyOf, oneOf, not, enum: values })) {
    if (value === undefined) continue;
    const rule = ruleText(keyword, value);
    if (rule !== undefined) rules.push(rule);
    losses.push({
      place: '',
      keyword,
      message: rule === undefined ? 'Only the properties in it are told.' : IN_DESCRIPTION,
    });
  }
  if (rules.length > 0) schema = { ...schema, description: withRules(schema['description'], rules) };
  return { schema, losses };
}

/** With what it refers to in the place of the reference. */
function withoutReference(root: Schema, references: References): Schema {
  let schema = root;
  for (const seen = new Set<unknown>(); '$ref' in schema && !seen.has(schema['$ref']); ) {
    const { $ref, ...own } = schema;
    seen.add($ref);
    schema = mergedWith(own, references.schemaAt($ref)) ?? schema;
  }
  return schema;
}

/** With the properties of all, each of which may be there. */
function withAll(schema: Schema, all: readonly unknown[]): Schema {
  const branches = all.filter(isPlainObject);
  if (branches.length === 0) return schema;
  const properties: Record<string, unknown> = { ...(schema['properties'] as Schema | undefined) };
  for (const branch of branches)
    for (const [name, each] of Object.entries((branch['properties'] ?? {}) as Schema)) {
      const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
      const isNew = own === undefined || isEqual(own, each);
      setOwn(properties as Record<string, JsonValue>, name, (isNew ? each : eitherOf(own, each)) as JsonValue);
    }
  const inEach = listed(branches[0]?.['required']).filter((name) =>
    branches.every((branch) => listed(branch['required']).includes(name)),
  );
  const required = [...new Set([...listed(schema['required']), ...inEach])];
  return { ...schema, properties, ...(required.length > 0 && { required }) };
}

function eitherOf(one: unknown, other: unknown): Schema {
  const branches =
    isPlainObject(one) && Object.keys(one).length === 1 && Array.isArray(one['anyOf']) ? one['anyOf'] : [one];
  return branches.some((branch) => isEqual(branch, other)) ? (one as Schema) : { anyOf: [...branches, other] };
}
