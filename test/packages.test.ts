import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { apiNouns } from '../cloud/cli/api-commands.ts'
import { commandsOf, readManifest } from '../edge/packaging/manifest.ts'
import { VERSION } from '../protocol/model/build-time.ts'

const root = resolve(import.meta.dirname, '..')

interface Manifest {
  name: string
  version: string
  license: string
  type: string
  engines: { node: string }
  workspaces?: string[]
  scripts?: Record<string, string>
  bin?: Record<string, string>
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  devDependencies?: Record<string, string>
}

const manifest = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Manifest

const whole = manifest('.')
const workspaces = ['protocol', 'edge', 'cloud', 'simulator', 'test']

const declared = ({
  dependencies,
  optionalDependencies,
  devDependencies,
}: Manifest): Record<string, string> => ({ ...dependencies, ...optionalDependencies, ...devDependencies })

const typed = new Set(Object.keys(declared(whole)).map((name) => name.replace(/^@types\//, '')))
/** Removes type-only imports: their packages may be missing at run time if the root declares the types. */
const withoutTypes = (text: string): string =>
  text.replaceAll(/^import type [^'"`;]*? from '([^'.][^']*)'/gm, (found, specifier: string) =>
    typed.has(packageOf(specifier)) ? '' : found,
  )

/** `kysely` for `kysely/helpers/sqlite`, `@hono/node-server` for itself. */
const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

/**
 * The packages that a text imports, requires, or runs with `node --import`; also a style's `@import` and
 * `@plugin`.
 */
function packagesIn(text: string): string[] {
  const patterns = [
    /^@(?:import|plugin) '([^'.][^']*)'/gm,
    /^\s*(?:import|export)\s(?:[^'"`;]*?\sfrom\s)?\s*'([^'.][^']*)'/gm,
    /\b(?:import|require|createRequire\(import\.meta\.url\))\('([^'.][^']*)'\)/g,
    /'--import', '([a-z][^']*)'/g,
  ]
  return patterns
    .flatMap((pattern) => [...withoutTypes(text).matchAll(pattern)])
    .map((match) => match[1]!)
    .filter((specifier) => !specifier.startsWith('node:'))
    .map(packageOf)
}

/** Files bundled for browsers, and the bundler: no program needs them at run time. */
const isBuilt = (path: string): boolean =>
  /^(ui|console\/page|shop\/page|local-api\/page|docs\/page|packaging)\//.test(path)

function importedBy(workspace: string, which: (path: string) => boolean = () => true): Set<string> {
  const sources = readdirSync(join(root, workspace), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(tsx?|css)$/.test(path) && !path.includes('node_modules'))
    .filter((path) => which(path))
    // Compiled JSX imports Preact.
    .map(
      (path) =>
        (path.endsWith('.tsx') ? "import 'preact'\n" : '') +
        readFileSync(join(root, workspace, path), 'utf8'),
    )
  return new Set(sources.flatMap(packagesIn))
}

test('package.json lists exactly the workspaces', () => {
  expect(whole.workspaces).toEqual(workspaces)
})

describe.each(workspaces)('%s', (workspace) => {
  const own = manifest(workspace)

  test('the workspace declares exactly the packages that it imports', () => {
    expect(Object.keys(declared(own)).sort()).toEqual([...importedBy(workspace)].sort())
  })

  test('the workspace declares packages of pages and their build as development packages, and the tests declare all of theirs', () => {
    if (workspace === 'test') return expect(own.dependencies).toBeUndefined()
    const atRunTime = importedBy(workspace, (path) => !isBuilt(path))
    const built = [...importedBy(workspace, isBuilt)].filter((name) => !atRunTime.has(name))
    return expect(Object.keys(own.devDependencies ?? {}).sort()).toEqual(built.sort())
  })

  test('the README of the workspace names each dependency', () => {
    const readme = readFileSync(join(root, workspace, 'README.md'), 'utf8')
    expect(Object.keys(declared(own)).filter((name) => !readme.includes(`\`${name}`))).toEqual([])
  })

  test('the workspace has the version, the module type and the Node versions of the root', () => {
    const { version, type, engines } = whole
    expect(own).toMatchObject({ name: `@larder/${workspace}`, version, type, engines })
  })
})

test('every operator command is a script of the repository, and a command of the installed cloud', () => {
  const parts = readFileSync(join(root, 'cloud/cli/main.ts'), 'utf8').matchAll(
    /import\('\.\/([a-z-]+)\.ts'\)/g,
  )
  const commands = [...parts]
    .map(([, name]) => name!)
    .filter((name) => name !== 'api-commands')
    .sort()
  expect(commands).toContain('keys')
  const scripts = Object.values(whole.scripts!).flatMap(
    (line) => / \S+cli\/main\.js (\S+)$/.exec(line)?.[1] ?? [],
  )
  expect(scripts.sort()).toEqual(commands)
  const installed = commandsOf(readManifest(root, 'cloud')).flatMap(
    ([, program]) => /cli\/main\.js:(.+)/.exec(program)?.[1] ?? [],
  )
  expect(installed.sort()).toEqual([...new Set([...commands, ...apiNouns])].sort())
})

test('a package that several workspaces use has one version', () => {
  const versions = new Map<string, Set<string>>()
  for (const own of workspaces.map(manifest))
    for (const [name, range] of Object.entries(declared(own)))
      versions.set(name, new Set([...(versions.get(name) ?? []), range]))
  expect([...versions].filter(([, ranges]) => ranges.size > 1)).toEqual([])
})

test('the root declares types only for packages that are used', () => {
  const used = new Set(workspaces.flatMap((workspace) => Object.keys(declared(manifest(workspace)))))
  const idle = Object.keys(declared(whole))
    .filter((name) => name.startsWith('@types/') && name !== '@types/node')
    .filter((name) => !used.has(name.slice('@types/'.length)))
  expect(idle).toEqual([])
})

test('only the simulator needs a pseudo-terminal', () => {
  const users = workspaces.filter((workspace) => 'node-pty' in declared(manifest(workspace)))
  expect(users).toEqual(['simulator'])
})

test('the lock file names no registry', () => {
  expect(readFileSync(join(root, 'package-lock.json'), 'utf8')).not.toMatch(/"resolved": "[a-z+]+:/)
})

test('every package names its licence and contains it', () => {
  expect(whole.license).toBe('UNLICENSED')
  for (const folder of workspaces) {
    expect([folder, manifest(folder).license]).toEqual([folder, 'UNLICENSED'])
    expect(readFileSync(join(root, folder, 'LICENSE'), 'utf8')).toContain('All rights reserved')
  }
})

test('the version that programs print is that of the packages', () => {
  for (const folder of ['.', ...workspaces])
    expect([folder, manifest(folder).version]).toEqual([folder, VERSION])
})

test('the compilation before a run skips the type check, which takes seven times as long; `check` runs it', () => {
  const compiling = Object.entries(whole.scripts ?? {}).filter(([, script]) => /\btsc\b/.test(script))
  expect(compiling.map(([name, script]) => [name, script.includes('--noCheck')])).toEqual([
    ['build', true],
    ['check', false],
  ])
})

test('larder in a checkout lists the commands of both packages, and suggests similar names', () => {
  const larder = (...args: string[]) =>
    spawnSync(process.execPath, [join(root, whole.bin!['larder']!), ...args], { encoding: 'utf8' })
  const help = larder('--help')
  expect([help.status, help.stderr]).toEqual([0, ''])
  for (const name of ['cloud', 'hub'] as const)
    for (const [command] of commandsOf(readManifest(root, name)))
      expect(help.stdout).toContain(`\n  ${command} `)
  expect(larder('hubz')).toMatchObject({
    status: 2,
    stdout: '',
    stderr: 'error: no such command: hubz; did you mean hubs?; --help lists them\n',
  })
  expect(larder()).toMatchObject({ status: 2, stdout: '', stderr: help.stdout })
})

test('the security policy lists every package with an install script, and whether npm may run it', () => {
  const policy = readFileSync(join(root, '.github/SECURITY.md'), 'utf8')
  const listed = [...policy.matchAll(/^\| `([^`]+)` \| [^|]+ \| (yes|no) \|$/gm)].map(([, name, allowed]) => [
    name,
    allowed,
  ])
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { hasInstallScript?: boolean }>
  }
  const allowed = (
    JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      allowScripts: Record<string, boolean>
    }
  ).allowScripts
  const scripted = Object.entries(lock.packages)
    .filter(([, { hasInstallScript }]) => hasInstallScript === true)
    .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
  const expected = [...new Set(scripted)]
    .toSorted()
    .map((name) => [name, allowed[name] === true ? 'yes' : 'no'])
  expect(listed).toEqual(expected)
})

test('the security policy names a private way to report, and no invented address', () => {
  const policy = readFileSync(join(root, '.github/SECURITY.md'), 'utf8')
  expect(policy).toContain('Report a vulnerability')
  expect(policy).toContain('private vulnerability reporting')
  expect(policy).not.toMatch(/[\w.]+@[\w-]+\.[a-z]/)
})
