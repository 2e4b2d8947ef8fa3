import { createRequire } from 'node:module';

/** The version of this package. */
export function ownVersion(): string {
  const manifest = createRequire(import.meta.url)('toolonion/package.json') as { readonly version: string };
  return manifest.version;
}
