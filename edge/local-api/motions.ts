/** Number of consecutive motions until the result of a command: a cycle opens the door and closes it. */
export const motionsOf = (body: object): number =>
  'cycles' in body && typeof body.cycles === 'number' ? 2 * body.cycles : 1
