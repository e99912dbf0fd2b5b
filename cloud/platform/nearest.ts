/** The known word that the writer of `word` probably meant; undefined if none is near. */
export function nearestOf(word: string, words: readonly string[]): string | undefined {
  const written = plainOf(word)
  if (written === '') return undefined
  const near = words
    .map((each) => ({ each, distance: wordDistance(written, plainOf(each)) }))
    .filter(({ distance }) => distance !== undefined)
  return near.toSorted((a, b) => a.distance! - b.distance!)[0]?.each
}

/** Whether two words are near: few letters differ, or one is the other cut at an underscore (`hub` for `hub_id`). */
export const isNear = (written: string, meant: string): boolean =>
  wordDistance(plainOf(written), plainOf(meant)) !== undefined

/** `hubId`, `hub-id` and `hub_id` are the same word. */
const plainOf = (word: string): string =>
  word
    .slice(0, LONGEST)
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll('-', '_')

/** Only the first letters of longer words are compared, which bounds the work that callers can cause. */
const LONGEST = 40
/** One error is allowed per this many letters. */
const LETTERS_PER_ERROR = 4

function wordDistance(written: string, meant: string): number | undefined {
  if (written === meant) return 0
  if (meant.startsWith(`${written}_`) || written.startsWith(`${meant}_`)) return 1
  const allowed = Math.floor(Math.max(written.length, meant.length) / LETTERS_PER_ERROR)
  if (Math.abs(written.length - meant.length) > allowed) return undefined
  const distance = editDistance(written, meant)
  return distance <= allowed ? distance : undefined
}

/** The number of letters to insert, delete or change; two swapped neighbours count once (Damerau). */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const areSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = areSwapped ? rows[i - 2]![j - 2]! + 1 : Infinity
      row.push(Math.min(changed, swapped, rows[i - 1]![j]! + 1, row[j - 1]! + 1))
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}
