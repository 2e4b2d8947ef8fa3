// A program for a process in which no code may be made from text.
import { type Schema, Validator } from '@cfworker/json-schema';
import { createDispatcher, defineTool, type JsonObject } from 'toolonion';
import { type SchemaCompiler, type ValidationOptions, validation } from 'toolonion/middleware';

const compile: SchemaCompiler = (schema) => {
  const validator = new Validator(schema as Schema, '2020-12', false);
  return (value) => {
    const { valid, errors } = validator.validate(value);
    const issues = errors.map(({ error, instanceLocation }) => ({
      message: error,
      path: instanceLocation.split('/').slice(1),
    }));
    return valid ? { value } : { issues };
  };
};

const tool = defineTool({
  name: 'tool',
  description: '…',
  inputSchema: { type: 'object', properties: { x: { type: 'number' } }, required: ['x'] },
  execute: (input) => JSON.stringify(input),
});

async function call(given: JsonObject, options: ValidationOptions) {
  const dispatcher = createDispatcher({ tools: [tool], middleware: [validation(options)] });
  const { error, content } = await dispatcher.dispatch({ name: 'tool', arguments: given });
  return { code: error?.code ?? 'ok', content, cause: String(error?.cause) };
}

console.log(
  JSON.stringify([await call({ x: 1 }, {}), await call({ x: 1 }, { compile }), await call({ x: 'one' }, { compile })]),
);
