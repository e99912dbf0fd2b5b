import '../../protocol/require-node.ts'
import { dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { bundlePrograms } from '../../edge/packaging/bundle.ts'
import { bundledPrograms, bundleFolder, compiledFolder, packageRoot } from './programs.ts'

const [compiled, bundled] = [compiledFolder(), bundleFolder()]

/** This module starts other programs beside its own place: it starts the bundled ones. */
const STARTS_PROGRAMS = join(compiled, 'simulator/demo/programs.js')
/** `test/process/mortal/preload.ts` replaces this module of a running program. */
const REPLACED = join(compiled, 'protocol/model/checkpoint.js')

// Makes the bundles of `commandOf`. Programs find pages and other files beside the compiled module.
await bundlePrograms(
  packageRoot(),
  compiled,
  bundled,
  bundledPrograms.map((name) => `${name}.js`),
  [
    {
      name: 'places',
      async resolveId(specifier, importer, options) {
        if (!specifier.endsWith('/checkpoint.js')) return null
        const found = await this.resolve(specifier, importer, { ...options, skipSelf: true })
        return found?.id === REPLACED ? { id: pathToFileURL(REPLACED).href, external: true } : found
      },
      transform(code, id) {
        if (!id.startsWith(compiled) || !code.includes('import.meta')) return null
        const place = id === STARTS_PROGRAMS ? join(bundled, relative(compiled, id)) : id
        return code
          .replaceAll('import.meta.dirname', JSON.stringify(dirname(place)))
          .replaceAll('import.meta.filename', JSON.stringify(place))
          .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(place).href))
      },
    },
  ],
)
