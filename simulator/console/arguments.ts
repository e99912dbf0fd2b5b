export type Values = Record<string, string | number>

/** The words of a command, and its `name=value` pairs with numbers as numbers. */
export function argumentsOf(rest: readonly string[]): { words: string[]; values: Values } {
  // The fields of a frame are pairs too. They belong to its line, which begins with `~`.
  const frame = rest.findIndex((word) => word.startsWith('~'))
  const isPair = (word: string, index: number): boolean =>
    /^[a-z][a-z0-9_]*=/.test(word) && (frame < 0 || index < frame)
  const pairs = rest.filter(isPair).map(pairOf)
  return { words: rest.filter((word, index) => !isPair(word, index)), values: Object.fromEntries(pairs) }
}

/** `name=value`. */
export function pairOf(word: string): [name: string, value: string | number] {
  const at = word.indexOf('=')
  const text = word.slice(at + 1)
  return [word.slice(0, at), text !== '' && Number.isFinite(Number(text)) ? Number(text) : text]
}
