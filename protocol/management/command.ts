/**
 * What the cloud, or an operator with a key, may have a hub's management service do: one SSH `exec` each, its command line
 * as `formatCommand` writes it. There is nothing else (SPEC §2).
 */
export type ManagementCommand =
  | { name: 'status' }
  | { name: 'restart' }
  | { name: 'enable-bin'; bin: number }
  | { name: 'disable-bin'; bin: number }

/** The user as whom every caller logs in: keys tell callers apart. */
export const MANAGEMENT_USER = 'larder'

/** Longer command lines are refused unread. */
export const MAX_COMMAND_LENGTH = 64

/** The fixed set, as it is shown to whoever asks for something else. */
export const COMMAND_USAGE = 'status | restart | enable-bin N | disable-bin N'

export function formatCommand(command: ManagementCommand): string {
  switch (command.name) {
    case 'status':
    case 'restart':
      return command.name
    case 'enable-bin':
    case 'disable-bin':
      return `${command.name} ${command.bin}`
  }
}

/** Reads a command line; `undefined` for whatever is not exactly one of the set. Nothing is ever given to a shell. */
export function parseCommand(line: string): ManagementCommand | undefined {
  if (line.length > MAX_COMMAND_LENGTH) return undefined
  if (line === 'status' || line === 'restart') return { name: line }
  const match = /^(enable-bin|disable-bin) (0|[1-9]\d{0,8})$/.exec(line)
  if (!match) return undefined
  return { name: match[1] as 'enable-bin' | 'disable-bin', bin: Number(match[2]) }
}
