import { join } from 'node:path'

/** Where the demo keeps things, below its data folder. */
export function demoPlaces(dataDir: string) {
  const at = (...parts: string[]) => join(dataDir, ...parts)
  return {
    dataDir,
    demoFile: at('demo.json'),
    /** What the seed printed. It is there once the first start got through. */
    seedFile: at('seed.json'),
    logs: at('logs'),
    cloud: at('cloud'),
    database: at('cloud', 'larder.sqlite'),
    hub: at('hub-1'),
    journal: at('hub-1', 'journal.sqlite'),
    hardwareFile: at('hub-1', 'hardware.json'),
    shelvesFile: at('hub-1', 'shelves.json'),
    /** Of the hub's management service: who may log in, its own key, and what the cloud was told of it. */
    authorizedKeys: at('hub-1', 'authorized_keys'),
    hostKey: at('hub-1', 'host-key'),
    managementFile: at('hub-1', 'management.json'),
    /** The cloud's key. */
    managementKey: at('cloud', 'management-key'),
    /** The launcher's own interface, for the management service. */
    supervisorSocket: at('supervisor.sock'),
    simulator: at('simulator'),
    gpioSocket: at('simulator', 'gpio.sock'),
    log: (name: string) => at('logs', `${name}.log`),
  }
}
export type DemoPlaces = ReturnType<typeof demoPlaces>
