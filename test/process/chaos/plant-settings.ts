import type { DemoPlaces } from '../../../simulator/demo/places.ts'

/** Delays of minutes in a shop are seconds here, so that a short run reaches each deadline. */
export const quickCloud: Readonly<Record<string, string>> = {
  LOG_LEVEL: 'info',
  ONLINE_WITHIN_MS: '15000',
  COMMAND_TIMEOUT_MS: '3000',
  IDLE_ORDER_MS: '12000',
  START_WITHIN_MS: '60000',
  PREPARE_TIMEOUT_MS: '60000',
  UNCLAIMED_TIMEOUT_MS: '30000',
  PAYMENT_RECHECK_MS: '2000',
  PAYMENT_HOLD_MS: '8000',
  WORK_POLL_MS: '1000',
  WORK_LEASE_MS: '3000',
  LEASE_MS: '6000',
  GUESTS_PER_MINUTE: '1000',
}

export const quickEdge: Readonly<Record<string, string>> = {
  LOG_LEVEL: 'debug',
  CLOSE_AFTER_EMPTY_MS: '300',
  SERIAL_PING_MS: '250',
  SERIAL_SILENT_MS: '1000',
  HEARTBEAT_MS: '2000',
}

export type ProgramName = 'cloud-1' | 'cloud-2' | 'hub' | 'simulator' | 'broker'

export interface PlantPorts {
  clouds: number[]
  edge: number
  simulator: number
  broker: number
}

/** Environments with which the programs find one another. */
export function environments(parts: {
  places: DemoPlaces
  ports: PlantPorts
  databaseUrl: string
  /** The cloud's own address of an external broker; without it the cloud contains the broker. */
  cloudMqttUrl: string | undefined
}) {
  const { places, ports, databaseUrl, cloudMqttUrl } = parts
  const gpioSocket = `unix:${places.gpioSocket}`
  return {
    cloud: (index: number): Record<string, string> => ({
      NODE_ENV: 'development',
      HOST: '127.0.0.1',
      PORT: String(ports.clouds[index]),
      // Callers see one service, independent of the process that answers.
      PUBLIC_URL: `http://127.0.0.1:${ports.clouds[0]}`,
      DATA_DIR: places.cloud,
      DATABASE_URL: databaseUrl,
      MQTT_URL: cloudMqttUrl ?? '',
      MQTT_PORT: String(ports.broker),
      PAYMENTS_URL: 'sandbox:',
      PAYMENTS_WEBHOOK_SECRET: 'the-same-in-every-process',
      IDENTITY_ISSUER: '',
    }),
    simulator: (speed: number): Record<string, string> => ({
      SIMULATOR_HOST: '127.0.0.1',
      SIMULATOR_PORT: String(ports.simulator),
      SIMULATOR_SPEED: String(speed),
      DATA_DIR: places.dataDir,
      HARDWARE_FILES: places.hardwareFile,
      SHELVES_FILE: places.shelvesFile,
      GPIO_SOCKET: gpioSocket,
    }),
    hub: (mqttPort: number, mqttPassword: string, token: string): Record<string, string> => ({
      HOST: '127.0.0.1',
      PORT: String(ports.edge),
      HARDWARE: places.hardwareFile,
      STORE: places.journal,
      LOCAL_TOKEN: token,
      MQTT_URL: `mqtt://127.0.0.1:${mqttPort}`,
      MQTT_PASSWORD: mqttPassword,
      GPIO: gpioSocket,
    }),
  }
}
