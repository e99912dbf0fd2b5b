import '../../protocol/require-node.ts'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readImageHeader } from '../../protocol/serial/image.ts'
import { progressOn } from '../../protocol/model/progress.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { buildPackage } from './build-package.ts'
import { packageNames } from './manifest.ts'
import { NODE, processors, thisProcessor } from './target.ts'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'

const usage = `Usage: npm run package -- ${packageNames.join('|')} [--arch ${processors.join('|')}] [--firmware DIR] [--sign KEY] [--out DIR]

Makes a Debian package and a tarball of a hub's services or of the cloud, with Node ${NODE.version}, and a list of their parts
(CycloneDX). They go to DIR, or to .build/packages, beside SHA256SUMS with the checksums of all packages there.

  --arch      processor of the packages (default: this machine's); another one needs its compiler (g++-aarch64-linux-gnu)
  --firmware  folder with firmware of controllers (*.img, protocol/serial/SPEC.md §12), which the hub's package then contains
  --sign      private key of OpenSSH that signs each file: FILE.sig
`

function readArguments() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      arch: { type: 'string', default: thisProcessor ?? process.arch },
      firmware: { type: 'string' },
      sign: { type: 'string' },
      out: { type: 'string', default: '.build/packages' },
      help: { type: 'boolean', default: false },
    },
  })
  if (positionals.length > 1) throw new Error(`unexpected: ${positionals[1]!}`)
  return { name: positionals[0], ...values }
}

function imagesOf(name: string, folder: string): string[] {
  if (name !== 'hub') throw new Error('--firmware: only the package of a hub contains firmware')
  const names = readdirSync(folder).filter((file) => file.endsWith('.img'))
  const files = names.map((file) => join(folder, file))
  const wrong = files.find((file) => !readImageHeader(readFileSync(file)))
  if (wrong !== undefined || files.length === 0)
    throw new Error(`--firmware: ${wrong ?? folder}: no image of a firmware`)
  return files
}

const SUMS = 'SHA256SUMS'

const progress = progressOn(process.stderr, systemRuntime().clock)
try {
  const { name: given, arch, firmware, sign: key, out, help } = readArguments()
  const name = packageNames.find((known) => known === given)
  const processor = processors.find((known) => known === arch)
  if (help) process.stdout.write(usage)
  else if (name === undefined) throw new Error(`a package is needed: ${packageNames.join(' or ')}`)
  else if (processor === undefined) throw new Error(`--arch: ${processors.join(' or ')}, not ${arch}`)
  else {
    const images = firmware === undefined ? [] : imagesOf(name, resolve(firmware))
    const options = { root: process.cwd(), name, processor, out: resolve(out), images, progress }
    const { files, installedBytes, isTried } = await buildPackage(options)
    const all = [...files, writeSums(options.out)]
    if (key !== undefined) for (const file of all) sign(file, resolve(key))
    progress.clear()
    const megabytes = (installedBytes / 1e6).toFixed(1)
    process.stdout.write(`${all.join('\n')}\ninstalled: ${megabytes} MB\n`)
    if (!isTried) process.stdout.write(`not started: nothing here runs programs for ${processor}\n`)
  }
} catch (error) {
  progress.clear()
  process.stderr.write(`larder package: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 2
}

/** Writes the checksums of all packages in a folder, for `sha256sum --check`. Returns the path. */
function writeSums(folder: string): string {
  const files = readdirSync(folder).filter((file) => /^larder-.*\.(deb|tar\.gz|cdx\.json)$/.test(file))
  const line = (file: string): string =>
    `${createHash('sha256')
      .update(readFileSync(join(folder, file)))
      .digest('hex')}  ${file}\n`
  const path = join(folder, SUMS)
  writeFileSync(path, files.sort().map(line).join(''))
  return path
}

/**
 * Signs a file with a private key of OpenSSH: `ssh-keygen -Y verify -n larder` checks the signature, which goes to
 * FILE.sig.
 */
function sign(file: string, key: string): void {
  const asked = ['-q', '-Y', 'sign', '-f', key, '-n', 'larder']
  const signature = execFileSync('ssh-keygen', asked, {
    input: readFileSync(file),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  writeFileSync(`${file}.sig`, signature)
}
