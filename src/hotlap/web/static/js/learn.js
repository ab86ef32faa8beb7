export class LearnView { constructor(app) { this.app = app; } async show() {} hide() {} }
