/** How `listed` writes a list. */
export interface ListedOptions {
  /** Items that are written before the rest is only counted. Default: 10. */
  readonly most?: number;
  /** Between two items. Default: `, `. */
  readonly separator?: string;
}

/**
 * A list of any length as a message may hold it: the first items as `show` writes them, and how many more there are.
 *
 * @example listed(names, printable) // 'read, write, and 12 more'
 */
export function listed<Item>(
  items: readonly Item[],
  show: (item: Item) => string,
  { most = 10, separator = ', ' }: ListedOptions = {},
): string {
  const rest = items.length > most ? [`and ${items.length - most} more`] : [];
  return [...items.slice(0, most).map((item) => show(item)), ...rest].join(separator);
}
