/** Counts what happened, by name. */
export class Tally {
  readonly counts = new Map<string, number>()

  hit(name: string, by = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + by)
  }

  /** `prefix` taken off, most frequent first. */
  of(prefix: string): [string, number][] {
    return [...this.counts]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, count]): [string, number] => [name.slice(prefix.length), count])
      .sort((a, b) => b[1] - a[1])
  }
}
