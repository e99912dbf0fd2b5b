/** A controller's line for people at the hub. */
export interface LinkSummary {
  controller: string
  port: string
  up: boolean
  firmware: string | null
  /** The controller's version of the serial protocol; null while it is not up. */
  protocol: number | null
  /** The last failure of the port or line, if the controller is not up; null while it is up. */
  reason: string | null
}
