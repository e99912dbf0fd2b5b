/** Times of a serial link, in milliseconds (serial SPEC §4, §5). */
export interface LinkSettings {
  /** The first repetition of an unacknowledged frame; doubles up to `maxRetryMs`. */
  retryMs: number
  maxRetryMs: number
  /** A frame that is still unacknowledged after this ends the connection, although the line answers. */
  giveUpMs: number
  pingMs: number
  /** Without any acknowledgement or PONG for this long the port counts as silent. */
  silentMs: number
  /** The first pause before a lost port is opened again; doubles up to `maxReopenMs`, and never ends. */
  reopenMs: number
  maxReopenMs: number
}

export const defaultLinkSettings: LinkSettings = {
  retryMs: 25,
  maxRetryMs: 400,
  giveUpMs: 10_000,
  pingMs: 1000,
  silentMs: 3000,
  reopenMs: 250,
  maxReopenMs: 5000,
}
