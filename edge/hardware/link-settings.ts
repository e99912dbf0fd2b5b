import {
  defaultsOf,
  duration,
  named,
  type SettingsOf,
  type SettingsTable,
} from '../../protocol/model/program-settings.ts'

/** Times of a serial link, in milliseconds (serial SPEC §4, §5). */
export const linkSettings = {
  /** The first repetition of an unacknowledged frame; doubles up to `maxRetryMs`. */
  retryMs: 25,
  maxRetryMs: 400,
  /** A frame that is still unacknowledged after this ends the connection, although the line answers. */
  giveUpMs: 10_000,
  pingMs: named('SERIAL_PING_MS', duration(1000, 'Time between two heartbeats on a serial line.')),
  /** Without any acknowledgement or PONG. */
  silentMs: named(
    'SERIAL_SILENT_MS',
    duration(3000, 'Time without an answer of its controller after which a serial port is opened again.'),
  ),
  /** The longest time for which an open port waits for the answer to HELLO; it doubles with each attempt. */
  maxGreetMs: named(
    'SERIAL_GREET_MAX_MS',
    duration(
      30_000,
      'Maximum wait for the first answer of a serial port; it starts at SERIAL_SILENT_MS and doubles with each attempt.',
    ),
  ),
  /** The first pause before a lost port is opened again; doubles up to `maxReopenMs`, and never ends. */
  reopenMs: 250,
  maxReopenMs: 5000,
} satisfies SettingsTable

export type LinkSettings = SettingsOf<typeof linkSettings>
export const defaultLinkSettings: LinkSettings = defaultsOf(linkSettings)
