/** Counts how often each kind of event happened, over all seeds of a run. */
export class Coverage {
  readonly counts = new Map<string, number>()

  hit(name: string, times = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + times)
  }

  merge(other: Coverage): void {
    for (const [name, count] of other.counts) this.hit(name, count)
  }

  /** Sorted lines `name count` of the names that begin with `prefix`. */
  lines(prefix: string): string[] {
    return [...this.counts]
      .filter(([name]) => name.startsWith(prefix))
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([name, count]) => `  ${name.slice(prefix.length).padEnd(44)} ${String(count).padStart(9)}`)
  }
}
