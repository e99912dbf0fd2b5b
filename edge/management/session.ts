import type { ServerChannel, Session } from 'ssh2'
import {
  exitCodeOf,
  REFUSED,
  type ManagementAnswer,
  COMMAND_USAGE,
  MAX_COMMAND_LENGTH,
  parseCommand,
  type ManagementCommand,
} from '../../protocol/management/command.ts'
import type { Log } from '../../protocol/model/log.ts'

export type Execute = (command: ManagementCommand, isWaiting: () => boolean) => Promise<ManagementAnswer>

/**
 * Serves one session channel: a command of the fixed set, or words about what there is. Whoever asks for a terminal,
 * variables, an agent, X11, sftp or another subsystem is refused by the library, as nobody listens for those.
 */
export function serveSession(session: Session, execute: Execute, log: Log): void {
  session.on('exec', (accept, _reject, { command: line }) => {
    const channel = accept()
    const command = parseCommand(line)
    if (command) void run(channel, command)
    else refuse(channel, { command: line.slice(0, MAX_COMMAND_LENGTH) })
  })
  session.on('shell', (accept) => refuse(accept(), { shell: true }))

  function refuse(channel: ServerChannel, asked: object): void {
    log.warn(asked, 'refused: not a command of the set')
    channel.stderr.write(`larder: not allowed. There is no shell here, only: ${COMMAND_USAGE}\n`)
    finish(channel, REFUSED)
  }

  async function run(channel: ServerChannel, command: ManagementCommand): Promise<void> {
    let isOpen = true
    channel.once('close', () => (isOpen = false))
    // Whatever the caller sends belongs to nobody.
    channel.resume()
    log.info({ command }, 'command')
    try {
      const answer = await execute(command, () => isOpen)
      log.info({ command, answer, isOpen }, answer.ok ? 'command done' : 'command failed')
      channel.write(`${JSON.stringify(answer)}\n`)
      finish(channel, exitCodeOf(answer))
    } catch (error) {
      log.error({ err: error, command }, 'command failed')
      channel.stderr.write('larder: the command failed; the log of the management service says why\n')
      finish(channel, 1)
    }
  }
}

function finish(channel: ServerChannel, exitCode: number): void {
  channel.exit(exitCode)
  channel.end()
}
