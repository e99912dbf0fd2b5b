/**
 * The hub and the cloud call it before and after each commit and each external effect. Production passes a function
 * that does nothing. A simulation may throw, which crashes that instance for good.
 */
export type Checkpoint = (point: string) => void

export const noCheckpoint: Checkpoint = () => {}
