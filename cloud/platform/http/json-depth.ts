/** How deep lists and objects may stand within each other. No body of the contract needs more than 5. */
const MOST_DEPTH = 64

const QUOTE = 0x22
const BACKSLASH = 0x5c
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d]

/** Whether JSON is nested deeper than any body of ours. To parse 500,000 levels takes 200 ms, to count them 2. */
export function isTooDeep(text: string): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (code === LIST || code === OBJECT) {
      depth += 1
      if (depth > MOST_DEPTH) return true
    } else if (code === LIST_END || code === OBJECT_END) depth -= 1
  }
  return false
}

/** The place of the quote that ends the string at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1
  return at
}
