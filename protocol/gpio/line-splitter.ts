/**
 * Cuts a stream of text into lines. `undefined` where a line grew beyond `maxLength` characters: the stream is of no more
 * use, and nothing of it was kept.
 */
export function createLineSplitter(maxLength: number): (chunk: string) => string[] | undefined {
  let rest = ''
  return (chunk) => {
    const parts = chunk.split('\n')
    parts[0] = rest + parts[0]
    rest = parts.pop()!
    if (rest.length <= maxLength && parts.every((line) => line.length <= maxLength)) return parts
    rest = ''
    return undefined
  }
}
