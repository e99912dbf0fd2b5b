/**
 * Called by the hub and the cloud at the instants at which a crash would matter (before and after each commit and each
 * effect on the outside world). Production does nothing there; a simulation may throw, which ends that instance for good.
 */
export type Checkpoint = (point: string) => void

export const noCheckpoint: Checkpoint = () => {}
