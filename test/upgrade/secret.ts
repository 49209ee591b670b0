/** The secret of the instances whose backups are kept here. Set in the environment, so no backup contains one. */
export const upgradeSecret = 'a secret for backups of releases'
