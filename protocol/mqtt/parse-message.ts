/** Maximum nesting of arrays and objects (SPEC §8). Real messages have fewer than ten. */
export const MAX_DEPTH = 32

/** The JSON value of a message. Undefined if it is not JSON, or nested too deeply for recursive code. */
export function parseMessage(text: string): unknown {
  if (isTooDeep(text)) return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

function isTooDeep(text: string): boolean {
  let depth = 0
  let isInText = false
  for (let at = 0; at < text.length; at += 1)
    switch (text.charCodeAt(at)) {
      case 0x5c: // backslash: the next character does not end the text
        if (isInText) at += 1
        break
      case 0x22: // "
        isInText = !isInText
        break
      case 0x5b: // [
      case 0x7b: // {
        if (!isInText && ++depth > MAX_DEPTH) return true
        break
      case 0x5d: // ]
      case 0x7d: // }
        if (!isInText) depth -= 1
        break
      default:
    }
  return false
}
