import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { Manifest } from './manifest.ts'

/** Debian's names of the processors, if they differ from Node's. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm: 'armhf', ia32: 'i386' }
export const debianArchitecture = architectures[process.arch] ?? process.arch

/** The files below a folder, by their paths from it. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    statSync(join(folder, path)).isFile(),
  )
}

export const sizeOf = (folder: string): number =>
  filesBelow(folder).reduce((sum, path) => sum + statSync(join(folder, path)).size, 0)

/** Puts units, configuration and other system files at Debian's locations, below `tree`. */
export function placeSystemFiles(
  root: string,
  tree: string,
  { units, files, configuration }: Manifest,
): void {
  const place = (from: string, to: string, mode: number): void => {
    const path = join(tree, to)
    mkdirSync(dirname(path), { recursive: true })
    copyFileSync(join(root, from), path)
    chmodSync(path, mode)
  }
  for (const unit of units) place(unit, join('/usr/lib/systemd/system', unit.split('/').at(-1)!), 0o644)
  for (const [to, from] of Object.entries(files)) place(from, to, 0o644)
  // Configuration files contain secrets; postinst gives them to the services' group.
  for (const [to, from] of Object.entries(configuration)) place(from, to, 0o640)
}

/** Makes the Debian package of `tree` at `path`. `line` is the Node release line of the native modules. */
export function makeDebianPackage(
  root: string,
  tree: string,
  path: string,
  { manifest, version, line }: { manifest: Manifest; version: string; line: number },
): void {
  const { name, summary, about, groups, folder, units, configuration, recommends } = manifest
  const debian = join(tree, 'DEBIAN')
  const installedKiB = Math.ceil(sizeOf(tree) / 1024)
  const depends = [`libc6 (>= ${newestGlibc(tree)})`, 'libstdc++6', 'passwd', 'util-linux']
  const control = [
    `Package: ${name}`,
    `Version: ${version}`,
    `Architecture: ${debianArchitecture}`,
    'Maintainer: Larder <root@localhost>',
    'Section: misc',
    'Priority: optional',
    `Installed-Size: ${installedKiB}`,
    `Depends: ${depends.join(', ')}`,
    // Not a dependency: a system that replaces its Node must not remove a hub's service.
    `Recommends: ${[`nodejs (>= ${line})`, ...recommends].join(', ')}`,
    `Description: ${summary}`,
    ` ${about}`,
    '',
  ]
  mkdirSync(debian)
  writeFileSync(join(debian, 'control'), control.join('\n'))
  writeFileSync(join(debian, 'conffiles'), `${Object.keys(configuration).join('\n')}\n`)
  const values: Record<string, string> = {
    FOLDER: folder,
    LINE: String(line),
    GROUPS: groups.join(' '),
    UNITS: units.map((unit) => unit.split('/').at(-1)!).join(' '),
    CONFIGURATION: Object.keys(configuration).join(' '),
  }
  for (const script of ['postinst', 'prerm', 'postrm']) {
    const text = readFileSync(join(root, 'edge/packaging/debian', script), 'utf8')
    writeFileSync(
      join(debian, script),
      text.replaceAll(/@([A-Z]+)@/g, (_, key: string) => values[key]!),
      { mode: 0o755 },
    )
  }
  execFileSync('dpkg-deb', ['--root-owner-group', '--build', tree, path], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** The newest glibc version that a native module requires: the modules were compiled against this machine's glibc. */
function newestGlibc(tree: string): string {
  const versions = filesBelow(tree)
    .filter((path) => path.endsWith('.node'))
    .flatMap((path) => [...readFileSync(join(tree, path), 'latin1').matchAll(/GLIBC_2\.(\d+)/g)])
    .map((match) => Number(match[1]))
  return `2.${Math.max(17, ...versions)}`
}
