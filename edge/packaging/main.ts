import '../../protocol/require-node.ts'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { progressOn } from '../../protocol/model/progress.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { buildPackage } from './build-package.ts'
import { packageNames } from './manifest.ts'

const usage = `Usage: npm run package -- ${packageNames.join('|')} [--out DIR]

Makes a Debian package and a tarball of a hub's services or of the cloud, for this machine's processor and for the line of
Node that runs this. They go to DIR, or to .build/packages.
`

function readArguments(): { name: string | undefined; out: string; help: boolean } {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      out: { type: 'string', default: '.build/packages' },
      help: { type: 'boolean', default: false },
    },
  })
  if (positionals.length > 1) throw new Error(`unexpected: ${positionals[1]!}`)
  return { name: positionals[0], ...values }
}

const progress = progressOn(process.stderr, systemRuntime().clock)
try {
  const { name: given, out, help } = readArguments()
  const name = packageNames.find((known) => known === given)
  if (help) process.stdout.write(usage)
  else if (name === undefined) throw new Error(`a package is needed: ${packageNames.join(' or ')}`)
  else {
    const options = { root: process.cwd(), name, out: resolve(out), progress }
    const { debian, tarball, installedBytes } = await buildPackage(options)
    progress.clear()
    process.stdout.write(
      `${debian}\n${tarball}\ninstalled, without Node: ${(installedBytes / 1e6).toFixed(1)} MB\n`,
    )
  }
} catch (error) {
  progress.clear()
  process.stderr.write(`larder package: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 2
}
