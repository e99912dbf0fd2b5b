/** The text, or the longest beginning that fits, with an ellipsis. `widthOf` measures a text. */
export function fit(text: string, width: number, widthOf: (text: string) => number): string {
  if (widthOf(text) <= width) return text
  const letters = Array.from(text)
  let most = letters.length - 1
  while (most > 0 && widthOf(`${letters.slice(0, most).join('')}…`) > width) most -= 1
  return most > 0 ? `${letters.slice(0, most).join('')}…` : ''
}
