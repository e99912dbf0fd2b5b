/** A dying process sends no answer. An answer of 500 therefore means an unexpected error. */
export const serverErrors = (tally: Tally): string[] =>
  tally
    .of('answer ')
    .filter(([name]) => / 500\b/.test(name))
    .map(([name, count]) => `${count} times ${name}`)

/** Counts events by name. */
export class Tally {
  readonly counts = new Map<string, number>()

  hit(name: string, by = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + by)
  }

  /** Counts of one prefix, which is removed; most frequent first. */
  of(prefix: string): [string, number][] {
    return [...this.counts]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, count]): [string, number] => [name.slice(prefix.length), count])
      .sort((a, b) => b[1] - a[1])
  }
}
