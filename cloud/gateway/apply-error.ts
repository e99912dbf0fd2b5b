/**
 * An entry of a hub's stream that cannot be applied, now or ever: it goes to the dead letters and the cursor moves on
 * (I8). Any other error ends the turn and the entry comes again.
 */
export class ApplyError extends Error {
  override readonly name = 'ApplyError'
}
