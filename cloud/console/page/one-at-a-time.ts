/**
 * Returns a function that runs `work`, one run at a time. Calls during a run cause one more run after it: a reading that
 * began before a change does not contain it.
 */
export function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let isRunning = false
  let isWanted = false
  return async () => {
    isWanted = true
    if (isRunning) return
    isRunning = true
    try {
      while (isWanted) {
        isWanted = false
        await work()
      }
    } finally {
      isRunning = false
    }
  }
}
