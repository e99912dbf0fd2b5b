// Loaded before every program of a package. Its native modules were compiled for one ABI of Node; another Node would
// fail in the middle of an import, or later. Written for a Node of any age.
var made = require('./package.json').madeFor
if (process.versions.modules !== made.abi) {
  process.stderr.write(
    'This package of Larder was made for Node ' +
      made.line +
      ' and this is Node ' +
      process.versions.node +
      ': install Node ' +
      made.line +
      ' (https://nodejs.org), or the package that was made for this Node.\n',
  )
  process.exit(1)
}
