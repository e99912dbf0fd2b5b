import {
  exitCodeOf,
  ManagementAnswer,
  formatCommand,
  type ManagementCommand,
} from '../../../protocol/management/command.ts'
import type { Log } from '../../../protocol/model/log.ts'
import type { ManagementAddress } from './addresses.ts'
import type { ExecFailure, ExecOutcome, ExecRequest } from './ssh-exec.ts'

export type RemoteOutcome =
  | { kind: 'answered'; answer: ManagementAnswer }
  /** `isSent`: it may have been carried out nevertheless. `error` is shown to whoever asked: nothing of the inside is in it. */
  | { kind: 'failed'; failure: ExecFailure | 'command_failed'; error: string; isSent: boolean }

/** Has a hub's management service carry out a command. */
export type Remote = (address: ManagementAddress, command: ManagementCommand) => Promise<RemoteOutcome>

export interface RemoteOptions {
  /** The cloud's private key, read for each command. Throws where there is none. */
  readKey: () => string
  exec: (request: ExecRequest) => Promise<ExecOutcome>
  connectMs: number
  commandMs: number
  log: Log
}

export const createRemote =
  ({ readKey, exec, connectMs, commandMs, log }: RemoteOptions): Remote =>
  async (address, command) => {
    let privateKey: string
    try {
      privateKey = readKey()
    } catch (error) {
      // Where it is kept is the operator's business: whoever asked is told no more than that.
      log.error({ err: error }, 'the key for management services cannot be read')
      return {
        kind: 'failed',
        failure: 'authentication_error',
        error: 'the cloud has no key for management services',
        isSent: false,
      }
    }
    const request = { address, privateKey, command: formatCommand(command), connectMs, commandMs }
    return readOutcome(await exec(request))
  }

function readOutcome(outcome: ExecOutcome): RemoteOutcome {
  if (outcome.kind === 'failed') return outcome
  const answer = parseAnswer(outcome.stdout)
  if (answer && exitCodeOf(answer) === outcome.code) return { kind: 'answered', answer }
  const said = (outcome.stderr || outcome.stdout).trim().slice(0, 300)
  return {
    kind: 'failed',
    failure: 'command_failed',
    error: `the management service ended with status ${outcome.code}: ${said}`,
    isSent: true,
  }
}

function parseAnswer(text: string): ManagementAnswer | undefined {
  try {
    return ManagementAnswer.parse(JSON.parse(text))
  } catch {
    // Not this service, or another version of it: its exit status and words are all there is.
    return undefined
  }
}
