/**
 * Takes the answers of repeated requests. Answers can overtake one another: the answer of an earlier request is dropped
 * after that of a later one.
 */
export function inOrder<T>(take: (answer: T) => void): (request: Promise<T>) => Promise<void> {
  let requested = 0
  let taken = 0
  return async (request) => {
    requested += 1
    const number = requested
    const answer = await request
    if (number < taken) return
    taken = number
    take(answer)
  }
}
