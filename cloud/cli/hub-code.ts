import * as files from 'node:fs'
import { encodeQR } from 'qr'
import { fileProblem } from '../../protocol/model/system-error.ts'
import { addressUnder } from '../platform/public-url.ts'
import type { CommandLine, Subcommand } from './command-line.ts'
import { lockInService } from './hub-record.ts'
import { idOf } from './options.ts'

export const baseOf = ({ PUBLIC_URL, PORT }: { PUBLIC_URL?: string | undefined; PORT: number }): string =>
  PUBLIC_URL ?? `http://127.0.0.1:${PORT}`

/** The QR code of the command that enrols a board: a technician scans it instead of typing the code. */
export const claimPicture: NonNullable<Subcommand['picture']> = ({ claim_code: code }, settings) =>
  `\n${encodeQR(`larder enroll --cloud ${baseOf(settings)} --code ${String(code)}`, 'ascii', { ecc: 'low' })}`

/** Prints the QR code of a hub's shop, for its door. */
export const codeCommands: CommandLine['subcommands'] = {
  qr: {
    options: ['hub', 'to'],
    positionals: ['hub'],
    async run({ db, settings, options }) {
      const hubId = idOf(options, 'hub', "a hub's")
      await db.transact((tx) => lockInService(tx, hubId))
      const url = addressUnder(baseOf(settings), `/shop/${hubId}`)
      const svg = encodeQR(url, 'svg', { ecc: 'medium', border: 4 })
      const { to } = options
      try {
        if (to !== undefined) files.writeFileSync(to, svg)
      } catch (error) {
        throw new Error(`--to: ${to} cannot be written: ${fileProblem(error)}`, { cause: error })
      }
      return { url, svg }
    },
  },
}
