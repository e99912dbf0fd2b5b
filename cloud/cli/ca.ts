import { X509Certificate } from 'node:crypto'
import { DAY_MS } from '../../protocol/model/times.ts'
import { endOf } from '../../protocol/mqtt/certificates.ts'
import { isToBeReplaced, retireFormer, rotateAuthority } from '../enrolment/rotation.ts'
import { authorityRows, hubsWithout } from '../gateway/hub-certificates.ts'
import { timestamp, timestampOrNull } from '../platform/calendar/days.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import type { Queries } from '../platform/store/database.ts'
import { recordAct, type CommandLine } from './command-line.ts'

const usage = `Usage:
  larder ca show
  larder ca rotate [--overlap DAYS]
  larder ca retire [--force]

The cloud's own certificate authority, which signs the certificates of hubs. rotate requests a new authority. The running service
makes it within seconds. Both are trusted during the overlap of 1 to 365 days (default 90). Hubs learn the new authority within an
hour while they are connected, and have a certificate of it within two hours. The embedded broker shows a certificate of the former authority
until every hub has one of the new, or until the end of the overlap. Then the former authority is deleted. An external broker must
read GET /pki/ca.pem within the first hour: the new authority signs no certificate of a hub before.

show prints the authorities, the newest first, and the hubs without a certificate of the newest or the requested one. retire deletes the former authority
at once. Prints JSON. Status 1 if a rotation is in progress or requested (rotate), or if there is no former authority or a hub has
no certificate of the new one (retire; --force retires it, and these hubs need a new enrolment).`

const DEFAULT_DAYS = 90

/** The cloud's own certificate authority, for operators. */
export const authorityCommands: CommandLine = {
  usage,
  subcommands: {
    show: { options: [], run: ({ q, runtime }) => show(q, runtime.clock.now()) },
    rotate: {
      options: ['overlap'],
      async run({ q, db, options, runtime }) {
        const days = Number(options['overlap'] ?? DEFAULT_DAYS)
        if (!Number.isInteger(days) || days < 1 || days > 365)
          throw new UsageError('--overlap takes a whole number of days from 1 to 365')
        const now = runtime.clock.now()
        await db.transact(async (tx) => {
          await rotateAuthority(tx, now, days * DAY_MS)
          await recordAct(tx.q, runtime, { action: 'ca.rotate', object: 'ca', detail: { days } })
        })
        return { requested: true, overlap_days: days, ...(await show(q, now)) }
      },
    },
    retire: {
      options: [],
      flags: ['force'],
      async run({ q, db, options, runtime }) {
        const now = runtime.clock.now()
        const force = options['force'] !== undefined
        const { lost } = await db.transact(async (tx) => {
          const ended = await retireFormer(tx, now, { force })
          if (ended.retired.length === 0) throw new Error('there is no former authority')
          const detail = { ids: ended.retired, hubs: ended.lost }
          await recordAct(tx.q, runtime, { action: 'ca.retire', object: 'ca', detail })
          return ended
        })
        return { retired_at: timestamp(now), hubs_to_enrol: lost, ...(await show(q, now)) }
      },
    },
  },
}

async function show(q: Queries, now: number) {
  const rows = await authorityRows(q)
  const authorities = rows.map(({ id, certificate, created_at, ends_at }) => {
    const own = new X509Certificate(certificate)
    return {
      id,
      fingerprint: own.fingerprint256,
      created_at: timestamp(created_at),
      expires_at: timestamp(endOf(own)),
      overlap_until: timestampOrNull(ends_at),
    }
  })
  const [newest] = rows
  if (!newest) return { authorities, hubs_without_newest: [] }
  // Before the service makes a requested authority, no hub has a certificate of it.
  const awaited = (await isToBeReplaced(q, newest.id)) ? newest.id + 1 : newest.id
  return { authorities, hubs_without_newest: await hubsWithout(q, awaited, now) }
}
