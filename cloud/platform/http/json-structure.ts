/** How deep lists and objects may stand within each other. No body of the contract needs more than 5. */
const MOST_DEPTH = 64
/** Fields and elements of a body, all together. The longest list of the contract has 10,000. */
const MOST_VALUES = 12_000

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * What is wrong with the structure of JSON; undefined if it is bounded. To parse 1 MiB of names, or of brackets, takes 100 to
 * 200 ms; to count them takes 2.
 */
export function structureProblem(text: string): string | undefined {
  let depth = 0
  let values = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (code === COMMA) values += 1
    else if (code === LIST || code === OBJECT) {
      depth += 1
      values += 1
    } else if (code === LIST_END || code === OBJECT_END) depth -= 1
    if (depth > MOST_DEPTH) return `must be at most ${MOST_DEPTH} lists and objects deep`
    if (values > MOST_VALUES) return `must have at most ${MOST_VALUES} fields and elements`
  }
  return undefined
}

/** The place of the quote that ends the string at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1
  return at
}
