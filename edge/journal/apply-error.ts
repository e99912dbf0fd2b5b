/**
 * An entry from the cloud that cannot be applied, and never will be: it goes to the dead letters and the cursor moves on
 * (I8). Anything else that is thrown while an entry is applied undoes the whole batch.
 */
export class ApplyError extends Error {
  override name = 'ApplyError'
}
