import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clientTypes } from './client-types.ts'

/**
 * Makes the client's package, ready for `npm pack`: `protocol/client` compiled, with generated API types in
 * place of the table of routes. Compiling it this way proves that it needs none of our other code, only a
 * browser's types.
 */
export function buildClient(root: string, out: string): void {
  const source = join(root, 'protocol/client')
  const work = mkdtempSync(join(tmpdir(), 'larder-client-'))
  try {
    for (const name of readdirSync(source).filter((each) => each.endsWith('.ts')))
      copyFileSync(join(source, name), join(work, name))
    writeFileSync(join(work, 'api.ts'), clientTypes())
    rmSync(out, { recursive: true, force: true })
    mkdirSync(out, { recursive: true })
    compile(root, work, out, { removeComments: true })
    compile(root, work, out, { declaration: true, emitDeclarationOnly: true })
    // The compiled declarations are longer than the generated text.
    writeFileSync(join(out, 'api.d.ts'), clientTypes())
    // These files contain only types, so their compiled form is empty.
    for (const name of ['api.js', 'types.js']) rmSync(join(out, name))
    for (const name of ['README.md', '../LICENSE'])
      copyFileSync(join(source, name), join(out, name.replace('../', '')))
    writeFileSync(join(out, 'package.json'), `${JSON.stringify(manifestOf(root), null, 2)}\n`)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function compile(root: string, work: string, out: string, options: object): void {
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2023', 'dom', 'dom.iterable'],
    module: 'esnext',
    moduleResolution: 'bundler',
    types: [],
    rootDir: work,
    outDir: out,
    rewriteRelativeImportExtensions: true,
    verbatimModuleSyntax: true,
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    ...options,
  }
  const config = join(work, 'tsconfig.json')
  writeFileSync(config, JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['--project', config], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
}

function manifestOf(root: string) {
  const { version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    version: string
    license: string
  }
  return {
    name: '@larder/client',
    version,
    license,
    description: 'The client of Larder’s HTTP interface, for browsers, Node and workers',
    type: 'module',
    sideEffects: false,
    exports: { '.': { types: './client.d.ts', default: './client.js' } },
  }
}
