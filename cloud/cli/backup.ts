import { readFileSync } from 'node:fs'
import { settingsIn } from '../../protocol/model/program-settings.ts'
import { createBackup } from '../operations/backup/create.ts'
import { installationOf, targetOf } from '../operations/backup/place.ts'
import { restoreBackup } from '../operations/backup/restore.ts'
import { openTarget, type ListedBackup } from '../operations/backup/target.ts'
import { verifyBackup } from '../operations/backup/verify.ts'
import { cloudSettings } from '../platform/settings/config.ts'
import { openDatabase } from '../platform/store/database.ts'
import { COMMAND_LINE, contextOf, recordAct, type CommandLine, type WithoutStore } from './command-line.ts'

const usage = `Usage:
  larder backup create [--to DIR|s3:URL] [--scheduled]
  larder backup list [--to DIR|s3:URL]
  larder backup verify FILE
  larder backup restore FILE [--force]

create copies database, media, secrets and settings into one file, while the service runs. Without --to the file goes to
BACKUP_TO, else to DATA_DIR/backups. --scheduled: the schedule may delete this backup later; it deletes no other.
BACKUP_PASSPHRASE_FILE encrypts it (age). verify restores a backup into a scratch database and checks the books there. restore
needs stopped cloud processes. It refuses a database with rows; --force replaces them. The next start raises the alarm
database_restored. An s3: address is s3://BUCKET[/PREFIX]?endpoint=URL&region=REGION. Prints JSON.`

/** The settings of an installation as the text of its `cloud.json`: the file, and the environment above it. */
function settingsText({ environment, config }: WithoutStore): string {
  const file = config === undefined ? {} : (JSON.parse(readFileSync(config, 'utf8')) as object)
  const given = [...settingsIn(cloudSettings).keys()].flatMap((name) =>
    environment[name] ? [[name, environment[name]]] : [],
  )
  return `${JSON.stringify({ ...file, ...Object.fromEntries(given) }, null, 2)}\n`
}

const shown = ({ scheduled: _scheduled, ...backup }: ListedBackup): object => backup

/** Backups, for operators. */
export const backupCommands: CommandLine = {
  usage,
  subcommands: {
    create: {
      store: 'none',
      options: ['to'],
      flags: ['scheduled'],
      async run(input) {
        const { settings, options, runtime } = input
        const installation = installationOf(settings, runtime)
        const made = await createBackup(installation, {
          to: targetOf(settings, options['to']),
          config: settingsText(input),
          scheduled: options['scheduled'] !== undefined,
        })
        const db = openDatabase({ url: installation.databaseUrl })
        try {
          const { file, sha256 } = made
          await recordAct(db.kysely, runtime, {
            action: 'backup.create',
            object: 'database',
            detail: { file, sha256 },
          })
        } finally {
          await db.close()
        }
        return shown(made)
      },
    },
    list: {
      store: 'none',
      options: ['to'],
      async run({ settings, options, runtime }) {
        const { credentials } = installationOf(settings, runtime)
        const listed = await openTarget(targetOf(settings, options['to']), credentials).list()
        return listed.map(({ name: _name, ...backup }) => shown(backup))
      },
    },
    verify: {
      store: 'none',
      options: [],
      positionals: ['file'],
      run: ({ settings, options, runtime }) =>
        verifyBackup(installationOf(settings, runtime), options['file']!),
      isFailure: (output) => !(output as { ok: boolean }).ok,
    },
    restore: {
      store: 'none',
      options: [],
      flags: ['force'],
      positionals: ['file'],
      run: (input) => {
        const { settings, options, terminal, runtime } = input
        return restoreBackup(installationOf(settings, runtime), {
          file: options['file']!,
          force: options['force'] !== undefined,
          actor: COMMAND_LINE,
          contextOf: (db) => contextOf(db, input),
          say: (sentence) => terminal.warn?.(`${sentence}\n`),
        })
      },
    },
  },
}
