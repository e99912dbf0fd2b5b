/** A number with its noun: `1 hub`, `2 hubs`. */
export const counted = (count: number, noun: string, many = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : many}`
