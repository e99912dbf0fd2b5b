import {
  changeRollout,
  findRollout,
  showRollout,
  startRollout,
  type RolloutChange,
} from '../operations/releases/rollouts.ts'
import { isAmount } from '../operations/releases/waves.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import { recordAct, type CommandLine, type Subcommand } from './command-line.ts'

const usage = `Usage:
  larder rollouts start VERSION [--waves 1,10%,100%] [--failures 10%]
  larder rollouts status|pause|resume|abort [ID]

Rollouts install a release at the hubs, in waves in the order of their ids. Each wave is a number or a percentage of all hubs, counted
from the first hub. A wave starts when the former one has ended. A hub waits until no order is in progress, and switches. If the new
version is not ready in time, is not welcomed, or lacks one of its controllers, the hub returns to the former version and raises the
alarm update_failed. More failures in a wave than --failures stop the rollout: hubs that have not switched keep their version. A
wave in which connected hubs had the release and none succeeded pauses the rollout (alarm update_failed): resume tries one more hub. A
hub that was never connected is skipped at once, an offline hub after ROLLOUT_OFFLINE_MS (24 hours). Without ID: the newest rollout. pause starts no
further hub. Prints JSON. Status 1 if the version is unknown, another rollout is open, or the state does not allow the change.`

/** Rollouts of releases, for operators. */
export const rolloutCommands: CommandLine = {
  usage,
  subcommands: {
    start: {
      options: ['waves', 'failures'],
      positionals: ['version'],
      run({ db, options, runtime }) {
        const version = options['version']!
        const waves = (options['waves'] ?? '1,10%,100%').split(',')
        const failures = options['failures'] ?? '10%'
        const wrong = [...waves, failures].find((amount) => !isAmount(amount))
        if (wrong !== undefined)
          throw new UsageError(
            `--waves and --failures take numbers of hubs and percentages up to 100%: ${wrong}`,
          )
        return db.transact(async (tx) => {
          const id = await startRollout(tx, { runtime }, { version, waves, failures })
          await recordAct(tx.q, runtime, {
            action: 'rollouts.start',
            object: id,
            detail: { version, waves, failures },
          })
          return showRollout(tx.q, id)
        })
      },
    },
    status: {
      options: [],
      positionals: ['id'],
      hasOptionalPositionals: true,
      run: async ({ q, options }) => showRollout(q, await findRollout(q, options['id'])),
    },
    pause: changing('pause'),
    resume: changing('resume'),
    abort: changing('abort'),
  },
}

function changing(change: RolloutChange): Subcommand {
  return {
    options: [],
    positionals: ['id'],
    hasOptionalPositionals: true,
    run: ({ db, options, runtime }) =>
      db.transact(async (tx) => {
        const id = await findRollout(tx.q, options['id'])
        await changeRollout(tx, { runtime }, id, change)
        await recordAct(tx.q, runtime, { action: `rollouts.${change}`, object: id })
        return showRollout(tx.q, id)
      }),
  }
}
